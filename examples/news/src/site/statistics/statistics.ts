/** What the statistics tell, whichever language asks for them. */
import type { Document } from 'mongodb';

/** Sources that a chart shows. */
export const SHOWN_SOURCES = 20;
/** Pairs of sources that link to each other. */
export const SHOWN_LINKS = 15;

export interface SourceMonths extends Document {
  _id: string;
  name: string;
  months: { month: Date; n: number }[];
}

/** The median pause between two posts of a source. */
export interface Cadence extends Document {
  _id: string;
  name: string;
  days: number;
}

export interface Word extends Document {
  _id: string;
  n: number;
}

/** How many posts of a source link to a host, and who lives there. */
export interface Links extends Document {
  _id: { source: string; host: string };
  name: string;
  to: string;
  n: number;
}

export interface Statistics {
  perSourceAndMonth(from: Date): Promise<SourceMonths[]>;
  cadence(): Promise<Cadence[]>;
  words(): Promise<Word[]>;
  links(): Promise<Links[]>;
}
