"""The keeper of one session: owner of its log, its running tool and its brain's lease. Standard library only."""
