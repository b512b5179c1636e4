"""The golden plans: what every policy decided on saved clusters, and must still decide."""
