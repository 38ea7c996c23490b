/** Days and weeks of the site are those of UTC, weeks those of ISO 8601. */
const day = 24 * 3600_000;

export function dayOf(date: Date): string {
  return date.toISOString().slice(0, 10);
}

/** The first moment of a day `2026-05-01`; undefined when there is no such day. */
export function startOfDay(name: string): Date | undefined {
  const date = /^\d{4}-\d\d-\d\d$/.test(name) ? new Date(`${name}T00:00:00Z`) : undefined;
  return date && !Number.isNaN(date.getTime()) && dayOf(date) === name ? date : undefined;
}

export function addDays(date: Date, days: number): Date {
  return new Date(date.getTime() + days * day);
}

/** The name of the week in which a date lies: `2026-W18`. */
export function weekOf(date: Date): string {
  const thursday = addDays(date, 3 - ((date.getUTCDay() + 6) % 7));
  const january = Date.UTC(thursday.getUTCFullYear(), 0, 1);
  return `${thursday.getUTCFullYear()}-W${String(1 + Math.floor((thursday.getTime() - january) / (7 * day))).padStart(2, '0')}`;
}

/** The Monday with which a week begins; undefined when there is no such week. */
export function startOfWeek(name: string): Date | undefined {
  const parts = /^(\d{4})-W(\d\d)$/.exec(name);
  if (!parts) return undefined;
  const fourth = new Date(Date.UTC(Number(parts[1]), 0, 4));
  const monday = addDays(fourth, -((fourth.getUTCDay() + 6) % 7) + 7 * (Number(parts[2]) - 1));
  return weekOf(monday) === name ? monday : undefined;
}

const long = new Intl.DateTimeFormat('en-GB', { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });
const short = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' });

export function inWords(date: Date): string {
  return long.format(date).replace(',', '');
}

export function shortly(date: Date): string {
  return short.format(date);
}

export function clock(date: Date): string {
  return date.toISOString().slice(11, 16);
}

/** How long ago or until, roughly: `3 h`. */
export function span(ms: number): string {
  const minutes = Math.round(Math.abs(ms) / 60_000);
  if (minutes < 1) return `${Math.round(Math.abs(ms) / 1000)} s`;
  if (minutes < 90) return `${minutes} min`;
  if (minutes < 36 * 60) return `${Math.round(minutes / 60)} h`;
  return `${Math.round(minutes / 1440)} days`;
}
