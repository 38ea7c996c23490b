//! Arithmetic on BSON numbers: promotion and overflow.
