//! Moderators in their console: a browser, the web server, and the whole census behind it.

mod console;
mod slow;
