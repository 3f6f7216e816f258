//! The journal, and stores of records.
