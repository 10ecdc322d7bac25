"""Who executes the runs of a plan: processes of this machine, a Ray cluster, or SLURM."""
