"""The monitor's speed against the true one: the second figure of Kuchumov and Korkhov."""
