"""The ledger: reservations before a request is sent, settlements before a reply is used."""
