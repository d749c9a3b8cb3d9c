//! What is published, as others read it: files, pages, and what the web server writes about
//! visitors.

mod files;
mod registrations;
mod site;
mod visitors;
