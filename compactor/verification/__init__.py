"""Whether a log is sound, and whether readers see in it what they saw before."""
