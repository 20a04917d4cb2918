"""A file of the cache is removed when its folder has a newer one, and no other is."""

from pathlib import Path

from cleaner_jobs import user_cache


def test_only_what_an_earlier_state_of_the_same_folder_left_is_removed(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    old, new = (user_cache.kept_file(environ, "spark", "/a", [s]) for s in ("1", "2"))
    other = user_cache.kept_file(environ, "spark", "/b", ["1"])
    cache = Path(user_cache.cache_dir(environ))
    cache.mkdir()
    for file in (old, new, other):
        Path(file).touch()
    user_cache.forget_older(new)
    assert {str(path) for path in cache.iterdir()} == {new, other}
