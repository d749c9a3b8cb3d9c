//! Holds a database's write lock until its standard input ends, as an `sqlite3` shell would. For
//! the scenarios.
//!
//! Argument: the database. Prints `locked` once it has the lock.
#![allow(clippy::print_stdout, reason = "this is how it tells")]

use std::error::Error;
use std::io::Read as _;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("which database?")?;
    let connection = rusqlite::Connection::open(path)?;
    connection.busy_timeout(std::time::Duration::from_secs(30))?;
    connection.execute_batch("BEGIN EXCLUSIVE")?;
    println!("locked");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(connection.execute_batch("ROLLBACK")?)
}
