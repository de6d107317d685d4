/**
 * The calls of the request under way and what became of them (agent-loop-contract 3.5). Rule: a call is known from its
 * registration on; whatever is said of one that nobody registered is an error that names it.
 */
import { UnregisteredCallError } from './requestErrors.ts';

export interface RegisteredCall {
  callId: string;
  name: string;
  args: unknown;
  status: 'pending' | 'running' | 'completed' | 'failed' | 'cancelled';
  result?: unknown;
  error?: string;
  reason?: string;
}

export interface ToolRegistry {
  /** A call that is registered again gets these arguments, and stands where it stood. */
  register(callId: string, name: string, args: unknown): void;
  start(callId: string): void;
  complete(callId: string, result: unknown): void;
  fail(callId: string, error: string): void;
  cancel(callId: string, reason: string): void;
  get(callId: string): RegisteredCall | undefined;
  list(): RegisteredCall[];
  /** Nothing where nobody registered it. */
  remove(callId: string): void;
  clear(): void;
}

export class CallRegistry implements ToolRegistry {
  readonly #calls = new Map<string, RegisteredCall>();

  register(callId: string, name: string, args: unknown): void {
    const known = this.#calls.get(callId);
    this.#calls.set(callId, known ? { ...known, name, args } : { callId, name, args, status: 'pending' });
  }

  start(callId: string): void {
    this.#change(callId, { status: 'running' });
  }

  complete(callId: string, result: unknown): void {
    this.#change(callId, { status: 'completed', result });
  }

  fail(callId: string, error: string): void {
    this.#change(callId, { status: 'failed', error });
  }

  cancel(callId: string, reason: string): void {
    this.#change(callId, { status: 'cancelled', reason });
  }

  get(callId: string): RegisteredCall | undefined {
    const known = this.#calls.get(callId);
    return known && { ...known };
  }

  list(): RegisteredCall[] {
    return [...this.#calls.values()].map((call) => ({ ...call }));
  }

  remove(callId: string): void {
    this.#calls.delete(callId);
  }

  clear(): void {
    this.#calls.clear();
  }

  #change(callId: string, change: Partial<RegisteredCall> & Pick<RegisteredCall, 'status'>): void {
    const known = this.#calls.get(callId);
    if (!known) throw new UnregisteredCallError(`no call ${JSON.stringify(callId)} is registered; register() it first`);
    const { callId: id, name, args } = known;
    this.#calls.set(callId, { callId: id, name, args, ...change });
  }
}
