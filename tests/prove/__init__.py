"""Hand-overs explored to their end: every order of events, with every fault, through what ships."""
