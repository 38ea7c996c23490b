/**
 * The rule of dates. A post's date is what its feed calls published, else what it calls updated, as long as that is
 * a date between 1990 and tomorrow; else it is the moment at which the fetcher first saw the post. A date within the
 * next day is a wrong time zone: the moment of fetching stands in for it. Once a post has a date it keeps it.
 */
export interface Dated {
  published: Date;
  dateFrom: 'published' | 'updated' | 'seen';
}

const earliest = Date.UTC(1990, 0, 1);
const day = 24 * 3600_000;

export function dateOf(item: { published?: string; updated?: string }, seen: Date): Dated {
  for (const field of ['published', 'updated'] as const) {
    const at = read(item[field]);
    if (at === undefined || at < earliest || at > seen.getTime() + day) continue;
    return { published: new Date(Math.min(at, seen.getTime())), dateFrom: field };
  }
  return { published: seen, dateFrom: 'seen' };
}

/** Dates as feeds write them: RFC 822 and ISO 8601, and what is nearly so. */
export function read(text: string | undefined): number | undefined {
  if (!text) return undefined;
  const said = text.trim();
  const plain = said
    // Weekdays are redundant, often in another language and sometimes wrong.
    .replace(/^[^\d\s,]+\.?,\s*/, '')
    .replace(/\b(\d{1,2})\s+(Mär|Maer|Mai|Okt|Dez)[a-z.]*/i, (_all, d: string, m: string) => `${d} ${{ m: 'Mar', a: 'May', o: 'Oct', d: 'Dec' }[/mai/i.test(m) ? 'a' : (m[0] as string).toLowerCase()]}`)
    .replace(/\b(CEST|MESZ)\b/, '+0200')
    .replace(/\b(CET|MEZ|BST)\b/, '+0100')
    .replace(/\b(UT|WET)\b/, 'GMT');
  for (const candidate of [said, plain]) {
    // ISO without an offset is UTC: Date.parse would take the machine's time zone.
    const iso = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(candidate) ? `${candidate.replace(' ', 'T')}Z` : candidate;
    // The engine reads far too much as a date, "post 7" for one.
    if (!/\d{4}|\d{1,2} \w{3} \d{2}\b/.test(iso)) continue;
    const at = Date.parse(/[Zz]|GMT|UTC|[+-]\d{2}:?\d{2}$|[A-Z]{3}$|^\d{4}-\d\d-\d\d$/.test(iso) ? iso : `${iso} GMT`);
    if (!Number.isNaN(at)) return at;
  }
  return undefined;
}
