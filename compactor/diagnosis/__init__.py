"""The checks of `doctor`: whether this machine and its log directories are fit for a run."""
