"""What has to be true before a release is checked, all of it at once, and nothing is uploaded."""

from __future__ import annotations

import pytest

from tests.own_tools import import_tool

release = import_tool("release_check")

WHEEL, SOURCE = "liere-1.2.3-py3-none-any.whl", "liere-1.2.3.tar.gz"


@pytest.mark.parametrize("version", ["0.1.0", "1.22.333", "1.2.3rc1", "1.2.3a2", "1.2.3.post1"])
def test_the_version_is_read(version):
    assert release.read_version(f'"""A docstring."""\n\n__version__ = "{version}"\n') == version


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "one line like"),
        ('__version__ = "1.2.3"\n__version__ = "1.2.4"\n', "got 2"),
        ('__version__ = "1.2"', "'1.2': use a version such as"),
        ('__version__ = "v1.2.3"', "'v1.2.3': use a version such as"),
    ],
)
def test_a_version_that_cannot_be_released_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        release.read_version(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# Changelog\n\n## [1.2.3] - 2026-01-01\n\n### Fixed\n\n- It.\n", ""),
        ("# Changelog\n\n## 1.2.3\n\n- It.\n\n## 1.2.2\n\n- That.\n", ""),
        ("## [Unreleased]\n\n### Added\n\n- It.\n\n## [1.2.2] - 2026-01-01\n\n- That.\n", ""),
        ("## [Unreleased]\n\n## [1.2.3] - 2026-01-01\n\n- It.\n", ""),
        ("## [1.2.30] - 2026-01-01\n\n- It.\n", "no section for 1.2.3"),
        ("- It.\n", "no section for 1.2.3"),
        ("## [Unreleased]\n\n### Added\n\n## [1.2.2] - 2026-01-01\n\n- That.\n", "says nothing about 1.2.3"),
    ],
)
def test_the_changelog_has_to_say_what_changes(text, problem):
    found = release.check_changelog(text, "1.2.3")
    assert problem in found
    assert bool(found) == bool(problem)


def test_the_citation_has_to_have_the_version():
    text = "cff-version: 9.9.9\nversion: {}\npreferred-citation:\n  version: 8.8.8\n"
    assert release.check_citation(text.format("1.2.3"), "1.2.3") == ""
    assert release.check_citation(text.format('"1.2.3"'), "1.2.3") == ""
    assert "has version 1.2.2, but" in release.check_citation(text.format("1.2.2"), "1.2.3")
    assert "has no version" in release.check_citation("cff-version: 1.2.3\n  version: 1.2.3\n", "1.2.3")


def test_a_tag_must_be_free_or_of_this_commit():
    assert release.check_tag("1.2.3", None, "a" * 40) == ""
    assert release.check_tag("1.2.3", "a" * 40, "a" * 40) == ""
    assert "v1.2.3 points to bbbbbbbbb, not to this commit aaaaaaaaa" in release.check_tag("1.2.3", "b" * 40, "a" * 40)


def test_changed_and_new_files_are_named():
    assert release.check_tree("\n") == ""
    assert "(a.py, b c.py, d.py and 2 more)" in release.check_tree(" M a.py\n?? b c.py\nA  d.py\n M e.py\n D f.py\n")


@pytest.mark.parametrize("names", [[], [WHEEL], [WHEEL, SOURCE, "liere-1.2.2.tar.gz"], ["liere-1.2.4.tar.gz", WHEEL]])
def test_other_packages_than_expected_are_named(names):
    assert "the build made" in release.check_packages(names, "1.2.3")
    assert release.check_packages([WHEEL, SOURCE], "1.2.3") == ""


def test_the_commands_tag_push_and_upload():
    packages = f"dist/{WHEEL} dist/{SOURCE}"
    push = ["git push origin v1.2.3", f"twine upload {packages}"]
    assert release.upload_commands("1.2.3", [SOURCE, WHEEL], has_tag=True) == push
    assert release.upload_commands("1.2.3", [SOURCE, WHEEL], has_tag=False)[1:] == push


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project that can be released, whose git and other commands are not run but answered."""
    for name, text in {
        "src/liere/version.py": '__version__ = "1.2.3"\n',
        "CHANGELOG.md": "## [Unreleased]\n\n- It.\n",
        "CITATION.cff": "version: 1.2.3\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    answers = {"rev-parse HEAD": "a" * 40 + "\n", "status --porcelain": ""}
    commands = []

    def run(*words):
        commands.append([str(word) for word in words])
        if "build" in words:
            folder = tmp_path / words[words.index("--outdir") + 1]
            for name in (WHEEL, SOURCE):
                (folder / name).write_text("new")
        return "fails" not in answers

    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "_git", lambda *words: answers.get(" ".join(words)))
    monkeypatch.setattr(release, "_run", run)
    return tmp_path, answers, commands


def test_a_release_is_built_checked_tested_and_not_uploaded(project, capsys):
    root, _, commands = project
    (root / "dist").mkdir()
    (root / "dist" / "liere-1.2.2.tar.gz").write_text("old")
    assert release.main([]) == 0
    assert sorted(path.name for path in (root / "dist").iterdir()) == [WHEEL, SOURCE]
    assert [words[1:3] for words in commands] == [["-m", "build"], ["-m", "twine"], ["tests/wheel.py", f"dist/{WHEEL}"]]
    assert "--strict" in commands[1]
    assert not any("upload" in words or "push" in words for words in commands)
    assert "Nothing has been uploaded" in capsys.readouterr().out


def test_all_problems_are_told_at_once_and_nothing_is_built(project, capsys):
    root, answers, commands = project
    (root / "CITATION.cff").write_text("version: 1.2.2\n")
    (root / "CHANGELOG.md").write_text("")
    answers["status --porcelain"] = " M README.md\n"
    answers["rev-parse --verify --quiet refs/tags/v1.2.3^{commit}"] = "b" * 40 + "\n"
    assert release.main([]) == 1
    assert not commands
    told = capsys.readouterr().err
    assert all(word in told for word in ("CITATION.cff", "CHANGELOG.md", "README.md", "v1.2.3"))


def test_what_fails_ends_it(project, capsys):
    root, answers, commands = project
    answers["fails"] = ""
    assert release.main([]) == 1
    assert len(commands) == 1
    assert not (root / "dist").exists()
    assert "cannot be built" in capsys.readouterr().err


def test_a_folder_without_git_is_refused(project, capsys):
    _, answers, _ = project
    del answers["rev-parse HEAD"]
    assert release.main([]) == 1
    assert "not a git repository" in capsys.readouterr().err


def test_tests_can_be_skipped_and_that_is_told(project, capsys):
    assert release.main(["--no-tests"]) == 0
    assert "has not been tested" in capsys.readouterr().out


def test_the_files_of_this_project_agree():
    version = release.read_version((release.ROOT / release.VERSION_FILE).read_text())
    assert release.check_citation((release.ROOT / "CITATION.cff").read_text(), version) == ""
    assert release.check_changelog((release.ROOT / "CHANGELOG.md").read_text(), version) == ""
