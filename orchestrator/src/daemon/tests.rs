//! Whole days of the closed loop in fake time, and single rounds of the loop.

mod crowds;
mod league;
mod rounds;
