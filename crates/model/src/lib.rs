//! The shared vocabulary of Nestor as plain data: BSON values and their order, dotted paths, namespaces, timestamps, error codes. No I/O.
