/** Templates: what is put into one is escaped, unless it is HTML already. */
export class Html {
  constructor(readonly text: string) {}
  toString(): string { return this.text; }
}

type Part = Html | string | number | undefined | null | false | Part[];

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

export function escape(text: string): string {
  return text.replace(/[&<>"']/g, (c) => entities[c] as string);
}

function render(part: Part): string {
  if (part === undefined || part === null || part === false) return '';
  if (Array.isArray(part)) return part.map(render).join('');
  return part instanceof Html ? part.text : escape(String(part));
}

export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(strings.reduce((text, string, i) => text + render(parts[i - 1]) + string));
}

/** HTML that is safe already: what `fetch/sanitize.ts` made. */
export function trusted(text: string): Html {
  return new Html(text);
}
