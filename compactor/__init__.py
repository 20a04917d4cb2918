"""The driver of a cleaning round: survey, select, launch the jobs, verify, swap in, report."""
