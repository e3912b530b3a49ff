"""What the multicast job decides while it runs: along which trees each table goes, and when anew.

``loop.PlanningLoop`` is the whole of it: reports go in, plans come out. What the reports say is in
``liveness``, ``links`` and ``volume``; ``decisions`` turns it into requests and plans;
``solving`` finds the plans, in a process of its own (``solver_process``).
"""
