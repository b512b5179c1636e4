"""pliantd: watches the cluster, decides once a cycle, changes waiting jobs within their requests.

::

    main.py       the command: configuration, log, lock, signals
    loop.py       when a cycle runs; what happens when the batch system is away
    cycling.py    one cycle: observe, decide, record, act
    server.py     puts it together; doors.py opens the doors, reloading.py says what needs a restart
    doors         lines.py (both), filter_door.py (door 1), munge_door.py and verbs.py (door 2)
    answers.py    what door 2 says, field by field
    config.py     pliant.toml
    notify.py     what systemd is told
"""
