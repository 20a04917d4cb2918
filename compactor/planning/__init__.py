"""Plan a round: which logs it takes on, how far, in what order, and with what room."""
