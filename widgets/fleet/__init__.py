"""Tables over the whole fleet: sessions, costs."""
