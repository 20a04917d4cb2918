"""What stands in a copy beside the logs: its manifest, and what keeps a broker from starting there.

A broker looks at no file of a name that it does not know. A directory that is not named like a
partition ends a broker that starts (log-format F-1.4): here that is wanted.
"""

MANIFEST = "compactor-copy.json"
UNFINISHED = "compactor-unfinished-copy"  # a directory, until the copy is whole
NO_BROKER = "compactor-no-broker"  # a directory, in a copy that a broker must not work on
