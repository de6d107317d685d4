/**
 * What is said of one call, one after the other. Rule: the next word is judged when the log has the one before it, or the
 * store has refused that; words on other calls do not wait for it.
 */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  take<T>(callId: string, say: () => Promise<T>): Promise<T> {
    const said = this.#last.get(callId)?.then(say, say) ?? say();
    this.#last.set(callId, said);
    const over = (): void => {
      if (this.#last.get(callId) === said) this.#last.delete(callId);
    };
    said.then(over, over);
    return said;
  }
}
