//! Submissions and opt-outs from HTTP to the row.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod files;
#[cfg(test)]
mod owners;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod submissions;
