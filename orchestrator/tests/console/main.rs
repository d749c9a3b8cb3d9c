//! The moderators' console from HTTP to the row.

#[cfg(test)]
mod decisions;
#[cfg(test)]
mod logins;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod wire;
