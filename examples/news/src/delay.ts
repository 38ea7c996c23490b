/** A pause. A module of its own, so that what waits does not load all of the fetcher. */
export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
