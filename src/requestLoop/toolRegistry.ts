/**
 * The calls of the active request and their outcomes (docs/internals/contracts.md, 3.5). Invariant: a call exists from
 * its registration. An update of an unregistered call throws an error that names it.
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
  /** A call that is registered again gets the new arguments, and keeps its status. */
  register(callId: string, name: string, args: unknown): void;
  start(callId: string): void;
  complete(callId: string, result: unknown): void;
  fail(callId: string, error: string): void;
  cancel(callId: string, reason: string): void;
  get(callId: string): RegisteredCall | undefined;
  list(): RegisteredCall[];
  /** Does nothing for an unregistered call. */
  remove(callId: string): void;
  clear(): void;
}

export class CallRegistry implements ToolRegistry {
  readonly #calls = new Map<string, RegisteredCall>();

  register(callId: string, name: string, args: unknown): void {
    const existing = this.#calls.get(callId);
    this.#calls.set(callId, existing ? { ...existing, name, args } : { callId, name, args, status: 'pending' });
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
    const call = this.#calls.get(callId);
    return call && { ...call };
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
    const call = this.#calls.get(callId);
    if (!call) throw new UnregisteredCallError(`no call ${JSON.stringify(callId)} is registered; register() it first`);
    const { callId: id, name, args } = call;
    this.#calls.set(callId, { callId: id, name, args, ...change });
  }
}
