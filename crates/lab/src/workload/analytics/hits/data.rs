//! The rows: page views of a web site, all functions of their number.

use crate::random::mix;

/// Numbers of a row that queries ask about; [`FILLERS`] follow them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    WatchId,
    EventTime,
    EventDate,
    UserId,
    RegionId,
    CounterId,
    AdvEngineId,
    ResolutionWidth,
    IsRefresh,
    MobilePhone,
    SearchEngineId,
    ClientIp,
    DontCountHits,
    IsLink,
    IsDownload,
    TraficSourceId,
    UrlHash,
    RefererHash,
    WindowClientWidth,
    WindowClientHeight,
}

/// Texts of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    SearchPhrase,
    MobilePhoneModel,
    Url,
    Title,
    Referer,
}

/// A column that queries ask about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Number(Number),
    Text(Text),
}

/// How many numbers queries ask about.
pub const NUMBERS: usize = 20;
/// Their names, in the order of [`Number`].
const NUMBER_NAMES: [&str; NUMBERS] = [
    "watchid",
    "eventtime",
    "eventdate",
    "userid",
    "regionid",
    "counterid",
    "advengineid",
    "resolutionwidth",
    "isrefresh",
    "mobilephone",
    "searchengineid",
    "clientip",
    "dontcounthits",
    "islink",
    "isdownload",
    "traficsourceid",
    "urlhash",
    "refererhash",
    "windowclientwidth",
    "windowclientheight",
];
/// Numbers that no query asks about: what is wide is read past, or is not read at all.
pub const FILLERS: [&str; 20] = [
    "javaenable",
    "goodevent",
    "counterclass",
    "os",
    "useragent",
    "resolutionheight",
    "resolutiondepth",
    "flashmajor",
    "flashminor",
    "netmajor",
    "netminor",
    "cookieenable",
    "hid",
    "age",
    "sex",
    "income",
    "interests",
    "robotness",
    "remoteip",
    "sendtiming",
];

impl Number {
    /// All of them.
    pub const ALL: [Self; NUMBERS] = [
        Self::WatchId,
        Self::EventTime,
        Self::EventDate,
        Self::UserId,
        Self::RegionId,
        Self::CounterId,
        Self::AdvEngineId,
        Self::ResolutionWidth,
        Self::IsRefresh,
        Self::MobilePhone,
        Self::SearchEngineId,
        Self::ClientIp,
        Self::DontCountHits,
        Self::IsLink,
        Self::IsDownload,
        Self::TraficSourceId,
        Self::UrlHash,
        Self::RefererHash,
        Self::WindowClientWidth,
        Self::WindowClientHeight,
    ];
}

impl Text {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::SearchPhrase,
        Self::MobilePhoneModel,
        Self::Url,
        Self::Title,
        Self::Referer,
    ];

    fn name(self) -> &'static str {
        ["searchphrase", "mobilephonemodel", "url", "title", "referer"][self as usize]
    }

    /// Bytes of each of its values: what is shorter ends in dots, because a prepared call has texts of one length.
    pub const fn bytes(self) -> usize {
        [16, 12, 40, 40, 40][self as usize]
    }
}

impl Column {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Number(number) => NUMBER_NAMES[number as usize],
            Self::Text(text) => text.name(),
        }
    }
}

/// Names of all columns but the key, in order.
pub fn names() -> Vec<&'static str> {
    let texts = Text::ALL.iter().map(|text| text.name());
    NUMBER_NAMES.into_iter().chain(FILLERS).chain(texts).collect()
}

/// What stands for no text.
pub fn nothing(text: Text) -> String {
    ".".repeat(text.bytes())
}

/// Rows of a second.
const ROWS_A_SECOND: i64 = 2;
const BEGIN: i64 = 1_372_636_800;
const DAY: i64 = 86_400;
/// Hosts of URLs, of one length, so that all languages sort the same.
const HOSTS: [&str; 4] = ["market", "google", "forums", "photos"];

/// What queries need of a row; texts are made when they are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    pub numbers: [i32; NUMBERS],
    phrase: u32,
    model: u32,
    url: u32,
    referer: u32,
}

impl Hit {
    /// Row `id` of `rows`.
    pub fn of(seed: u64, rows: u64, id: u64) -> Self {
        let random = mix(!seed ^ id.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (more, most) = (mix(random), mix(!random));
        // The lower of two is the more frequent one.
        let skewed = |n: u64, below: u64| ((n & 0xFFFF) % below).min((n >> 16 & 0xFFFF) % below) as i64;
        let time = BEGIN + id as i64 / ROWS_A_SECOND;
        let some = |n: u64, one_of: u64, below: u64| {
            if n.is_multiple_of(one_of) {
                1 + skewed(n >> 5, below)
            } else {
                0
            }
        };
        let url = skewed(random >> 3, (rows / 20).clamp(50, 60_000)) as u32;
        let referer = if more & 3 == 0 {
            0
        } else {
            1 + skewed(most >> 9, 3_000) as u32
        };
        let phrase = match more >> 60 {
            0..4 => 1 + skewed(more, 300) as u32,
            _ => 0,
        };
        let numbers = [
            (most >> 33) as i64,
            time,
            time / DAY,
            ((random >> 8) % (rows / 8 + 1)).min((random >> 20) % (rows / 4 + 1)) as i64,
            skewed(random >> 30, 200),
            skewed(more >> 8, 100),
            some(random, 32, 20),
            [1366, 1920, 1280, 1024][(more >> 40 & 3) as usize],
            i64::from(more >> 44 & 7 == 0),
            skewed(more >> 12, 40),
            if phrase == 0 { 0 } else { 1 + skewed(more >> 20, 10) },
            (mix(random >> 40) & 0xFFFF) as i64 % (rows as i64 / 10 + 10),
            i64::from(most >> 7 & 15 == 0),
            i64::from(most >> 11 & 3 == 0),
            i64::from(most >> 13 & 31 == 0),
            (most >> 18 & 7) as i64 - 1,
            i64::from(url) * 7 + 3,
            i64::from(referer) * 11 + 5,
            800 + 10 * skewed(most >> 21, 100),
            600 + 10 * skewed(most >> 27, 60),
        ];
        Self {
            numbers: numbers.map(|number| number as i32),
            phrase,
            model: some(most, 16, 50) as u32,
            url,
            referer,
        }
    }

    /// A number.
    pub fn number(&self, number: Number) -> i64 {
        i64::from(self.numbers[number as usize])
    }

    /// The number of a filler, from its place.
    pub fn filler(&self, at: usize) -> i64 {
        i64::from(self.numbers[at % NUMBERS] >> (at % 5 + 1))
    }

    /// A text.
    pub fn text(&self, text: Text) -> String {
        let host = |n: u32| HOSTS[(n as usize).trailing_ones().min(3) as usize];
        let start = match text {
            Text::SearchPhrase if self.phrase > 0 => format!("search{:08}", self.phrase),
            Text::MobilePhoneModel if self.model > 0 => format!("phone{:05}", self.model),
            // Longer or shorter, by the page.
            Text::Url => format!(
                "http://{}.test/{:08}{}",
                host(self.url),
                self.url,
                "x".repeat(self.url as usize % 12)
            ),
            Text::Title => format!("Page {:06} of {}", self.url / 3, host(self.url)),
            Text::Referer if self.referer > 0 => format!("http://{}.test/{:08}", host(self.referer), self.referer),
            _ => String::new(),
        };
        format!("{start:.<0$}", text.bytes())
    }
}
