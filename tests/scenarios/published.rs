//! What is published, as others read it: files, pages, and what the web server logs about visitors.

mod consumers;
mod elsewhere;
mod files;
mod posts;
mod push;
mod registrations;
mod site;
mod swaps;
mod visitors;
