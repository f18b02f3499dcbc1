//! Every reason not to resume: the turn is told everything once, says why, and the turn after it
//! resumes again.

mod binaries;
mod files;
mod folders;
mod limits;
mod wishes;
