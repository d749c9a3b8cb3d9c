//! What is published, as others read it: files, pages, and what the web server logs about visitors.

mod consumers;
mod files;
mod posts;
mod push;
mod registrations;
mod remote_push;
pub(crate) mod site;
mod swaps;
mod visitors;
