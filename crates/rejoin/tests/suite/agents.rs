//! What holds for one CLI after the other.

mod opencode;
