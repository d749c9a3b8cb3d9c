//! Timestamps, and all intervals of the census.

use std::ops::Range;
use std::time::Duration;

/// Milliseconds since 1970 in UTC. Arithmetic saturates: clocks jump, and a record must survive
/// that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }

    /// How long ago `earlier` was. Zero if it is in the future.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// The time as RFC 3339 in UTC, in whole seconds: `2026-11-22T07:30:00Z`. Outside the years 0000 to
/// 9999, which RFC 3339 can't write, the number of milliseconds and `ms`.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "the range is checked first, and all divisors are constants"
)]
pub fn rfc3339(at: Timestamp) -> String {
    /// Seconds at which the years 0000 and 10000 begin.
    const YEARS: Range<i64> = -62_167_219_200..253_402_300_800;
    /// Days from 0000-03-01 to 1970-01-01. Years that begin in March have their leap day at the
    /// end.
    const DAYS_TO_1970: i64 = 719_468;
    const DAYS_OF_400_YEARS: i64 = 146_097;
    let seconds = at.0.div_euclid(1000);
    if !YEARS.contains(&seconds) {
        return format!("{} ms", at.0);
    }
    let day = seconds.div_euclid(86_400) + DAYS_TO_1970;
    let second = seconds.rem_euclid(86_400);
    let (eras, day) = (
        day.div_euclid(DAYS_OF_400_YEARS),
        day.rem_euclid(DAYS_OF_400_YEARS),
    );
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // March is 0. Five months have 153 days.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, years) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = 400 * eras + year + years;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A random number: a fraction of one, `0` to `u32::MAX`, uniform. The caller passes it, so that
/// the rules stay pure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jitter(pub u32);

impl Jitter {
    /// This fraction of `whole`, from `0` to `whole`.
    pub fn of(self, whole: u64) -> u64 {
        let scaled = u128::from(whole)
            .saturating_mul(u128::from(self.0))
            .checked_div(u128::from(u32::MAX))
            .unwrap_or(0);
        u64::try_from(scaled).unwrap_or(whole)
    }
}

const MINUTE: u64 = 60 * 1000;
const HOUR: u64 = 60 * MINUTE;

/// A "day" between two checks. 29 is deliberately a prime: successive checks of a host fall on
/// different hours of the day. So a host that is down each night, or during our nightly backup, is
/// not always checked then, and no two hosts stay synchronised.
const DAY: u64 = 29 * HOUR;
const DAY_HALF_WIDTH: u64 = 2 * HOUR;

/// Least time between the first check and the second. Up to a day more spreads hosts that were all
/// checked for the first time within hours.
const SECOND_CHECK_MIN: u64 = 20 * HOUR;

/// A "week" between two checks: 167 hours is also a prime, and one hour short of a week, for the
/// same reason.
const WEEK: u64 = 167 * HOUR;
const WEEK_HALF_WIDTH: u64 = 11 * HOUR + 30 * MINUTE;

/// Most doublings of a week: four weeks.
pub const DOUBLINGS_MAX: u8 = 2;

const AGAIN_SOON: u64 = HOUR;

/// Time between two dumps: six hours and six minutes, so that they also move over the day.
const DUMP: u64 = 6 * HOUR + 6 * MINUTE;
const DUMP_HALF_WIDTH: u64 = 5 * MINUTE;

/// Time between a withdrawal and the list without it. Owners are promised a quarter of an hour, of
/// which making a list of a million names takes a minute. All withdrawals in between share a list.
const WITHDRAWN: u64 = 10 * MINUTE;

const CALENDAR_DAY: u64 = 24 * HOUR;

/// All intervals of the census.
///
/// The lab divides them, so that a month passes in minutes. Otherwise it is [`Calendar::REAL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calendar {
    /// All durations are divided by this; 0 counts as 1. Greater than 1 only in the lab.
    pub divisor: u32,
}

impl Calendar {
    pub const REAL: Self = Self { divisor: 1 };

    /// Interval between daily checks: 29 h ± 2 h.
    pub fn day(self, jitter: Jitter) -> Duration {
        self.around(DAY, DAY_HALF_WIDTH, jitter)
    }

    /// Interval between weekly checks: 167 h ± 11.5 h.
    pub fn week(self, jitter: Jitter) -> Duration {
        self.weeks(0, jitter)
    }

    /// A week doubled `doublings` times: one, two or four weeks. Values above [`DOUBLINGS_MAX`]
    /// count as that.
    pub fn weeks(self, doublings: u8, jitter: Jitter) -> Duration {
        let factor = match doublings {
            0 => 1,
            1 => 2,
            _ => 4,
        };
        self.around(
            WEEK.saturating_mul(factor),
            WEEK_HALF_WIDTH.saturating_mul(factor),
            jitter,
        )
    }

    /// Time from a new host's first check to its second: 20 to 49 h.
    pub fn second_check(self, jitter: Jitter) -> Duration {
        self.millis(SECOND_CHECK_MIN.saturating_add(jitter.of(DAY)))
    }

    /// Time until the next check if a check gave no verdict (interrupted, faulted, unconfirmed): 0
    /// to 1 h.
    pub fn again_soon(self, jitter: Jitter) -> Duration {
        self.millis(jitter.of(AGAIN_SOON))
    }

    /// An interval from the operator's settings, divided like the others.
    pub fn shortened(self, interval: Duration) -> Duration {
        self.millis(u64::try_from(interval.as_millis()).unwrap_or(u64::MAX))
    }

    /// Time until the next dump: 6 h 6 min ± 5 min.
    pub fn dump_interval(self, jitter: Jitter) -> Duration {
        self.around(DUMP, DUMP_HALF_WIDTH, jitter)
    }

    /// Time between the withdrawal of a listed host and the list without it: 10 min.
    pub fn withdrawn_within(self) -> Duration {
        self.millis(WITHDRAWN)
    }

    /// How long a host that was once alive must fail before it is dead, and how long a host must
    /// redirect before it has moved: 7 d.
    pub fn dying_at_least(self) -> Duration {
        self.days(7)
    }

    /// How long after its last `alive` a host may still be listed: 14 d (invariant I11).
    pub fn unlisted_after(self) -> Duration {
        self.days(14)
    }

    /// How long ago a source must have named a held-back host for the first time: 7 d.
    pub fn named_at_least(self) -> Duration {
        self.days(7)
    }

    /// The longest delay beyond the interval that a host can request with `Retry-After`: 1 d.
    pub fn refused_extra_max(self) -> Duration {
        self.days(1)
    }

    /// How long a host that was never alive is kept: 365 d.
    pub fn forgotten_after(self) -> Duration {
        self.days(365)
    }

    /// The longest interval of any rule: four weeks with maximal jitter, and a `Retry-After`. Later
    /// due times come from a clock jump.
    pub fn longest(self) -> Duration {
        self.weeks(DOUBLINGS_MAX, Jitter(u32::MAX))
            .saturating_add(self.refused_extra_max())
    }

    fn days(self, count: u64) -> Duration {
        self.millis(CALENDAR_DAY.saturating_mul(count))
    }

    fn around(self, centre: u64, half_width: u64, jitter: Jitter) -> Duration {
        let offset = jitter.of(half_width.saturating_mul(2));
        self.millis(centre.saturating_sub(half_width).saturating_add(offset))
    }

    fn millis(self, millis: u64) -> Duration {
        let divisor = u64::from(self.divisor.max(1));
        Duration::from_millis(millis.checked_div(divisor).unwrap_or(millis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Jitter = Jitter(0);
    const MOST: Jitter = Jitter(u32::MAX);

    fn check(interval: impl Fn(Jitter) -> Duration, least_minutes: u64, most_minutes: u64) {
        assert_eq!(interval(LEAST), Duration::from_secs(least_minutes * 60));
        assert_eq!(interval(MOST), Duration::from_secs(most_minutes * 60));
    }

    #[test]
    fn a_moment_is_written_to_the_second_in_utc() {
        let check = |seconds: i64, expect: &str| {
            assert_eq!(rfc3339(Timestamp(seconds * 1000 + 999)), expect);
        };
        check(0, "1970-01-01T00:00:00Z");
        check(-1, "1969-12-31T23:59:59Z");
        check(951_868_799, "2000-02-29T23:59:59Z");
        check(1_700_000_000, "2023-11-14T22:13:20Z");
        check(4_107_542_400, "2100-03-01T00:00:00Z");
        check(-62_167_219_200, "0000-01-01T00:00:00Z");
        check(253_402_300_799, "9999-12-31T23:59:59Z");
        for out_of_range in [i64::MIN, -62_167_219_200_001, 253_402_300_800_000, i64::MAX] {
            let text = format!("{out_of_range} ms");
            assert_eq!(rfc3339(Timestamp(out_of_range)), text);
        }
    }

    #[test]
    fn every_day_of_four_hundred_years_follows_the_one_before_it() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for number in 0..146_097 {
            let text = rfc3339(Timestamp(number * 86_400_000));
            assert_eq!(text, format!("{year}-{month:02}-{day:02}T00:00:00Z"));
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let days = match month {
                2 if is_leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > days {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }

    #[test]
    fn intervals_have_these_bounds() {
        let calendar = Calendar::REAL;
        check(|j| calendar.day(j), 27 * 60, 31 * 60);
        check(|j| calendar.week(j), 155 * 60 + 30, 178 * 60 + 30);
        check(|j| calendar.weeks(1, j), 311 * 60, 357 * 60);
        check(|j| calendar.weeks(2, j), 622 * 60, 714 * 60);
        check(|j| calendar.weeks(200, j), 622 * 60, 714 * 60);
        check(|j| calendar.second_check(j), 20 * 60, 49 * 60);
        check(|j| calendar.again_soon(j), 0, 60);
        check(|j| calendar.dump_interval(j), 361, 371);
        check(|_| calendar.withdrawn_within(), 10, 10);
        check(|_| calendar.dying_at_least(), 7 * 1440, 7 * 1440);
        check(|_| calendar.unlisted_after(), 14 * 1440, 14 * 1440);
        check(|_| calendar.refused_extra_max(), 1440, 1440);
        check(|_| calendar.forgotten_after(), 365 * 1440, 365 * 1440);
        check(|_| calendar.longest(), 738 * 60, 738 * 60);
    }

    #[test]
    fn a_calendar_of_the_lab_is_divided_and_never_divides_by_nothing() {
        let day = Calendar::REAL.day(LEAST);
        assert_eq!(Calendar { divisor: 1000 }.day(LEAST), day / 1000);
        assert_eq!(Calendar { divisor: 0 }.day(LEAST), day);
    }

    #[test]
    fn moments_at_the_ends_of_time_stay_there() {
        let hour = Duration::from_secs(3600);
        assert_eq!(Timestamp(i64::MAX).plus(hour), Timestamp(i64::MAX));
        assert_eq!(Timestamp(i64::MIN).minus(hour), Timestamp(i64::MIN));
        assert_eq!(Timestamp(0).plus(Duration::MAX), Timestamp(i64::MAX));
        assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
        assert_eq!(Timestamp(9).since(Timestamp(5)), Duration::from_millis(4));
    }
}
