/**
 * The calls of the active request and their outcomes (docs/internals/contracts.md, 3.5). Invariant: a call exists from
 * its registration. An update of an unregistered call throws an error that names it.
 */
import { UnregisteredCallError } from './requestErrors.ts';

/** A call in the registry. */
export interface RegisteredCall {
  /** The id of the call. */
  callId: string;
  /** The name of the tool. */
  name: string;
  /** The arguments of the call. */
  args: unknown;
  /** The state of the call. */
  status: 'pending' | 'running' | 'completed' | 'failed' | 'cancelled';
  /** The result of a completed call. */
  result?: unknown;
  /** The message of a failed call. */
  error?: string;
  /** The reason of a cancel. */
  reason?: string;
}

/**
 * The calls of a request by their ids. Changes of unregistered calls throw UnregisteredCallError, unless the comment of a method differs.
 */
export interface ToolRegistry {
  /** A call that is registered again gets the new arguments, and keeps its status. */
  register(callId: string, name: string, args: unknown): void;
  /** Marks a call as running. */
  start(callId: string): void;
  /** Marks a call as completed. */
  complete(callId: string, result: unknown): void;
  /** Marks a call as failed. */
  fail(callId: string, error: string): void;
  /** Marks a call as cancelled. */
  cancel(callId: string, reason: string): void;
  /** Returns a copy of a call, or undefined. */
  get(callId: string): RegisteredCall | undefined;
  /** Returns copies of all calls, in the order of their registration. */
  list(): RegisteredCall[];
  /** Does nothing for an unregistered call. */
  remove(callId: string): void;
  /** Removes all calls. */
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
