/** Tests the separation of a caller's signal from a call that may ignore it, at every moment of an abort. */
import { expect, it, vi } from 'vitest';
import { abortableCall } from '../../src/models/wire/abortableCall.ts';

/** A value that the test delivers. */
function late<T>() {
  let come: (value: T) => void = () => {};
  const value = new Promise<T>((resolve) => {
    come = resolve;
  });
  return { value, come: (arrived: T) => come(arrived) };
}

it('an abort before the call reaches the called function, and its late value is discarded', async () => {
  const reason = new Error('stop');
  const call = abortableCall(AbortSignal.abort(reason));
  const { value, come } = late<string>();
  const discard = vi.fn();
  const start = vi.fn((signal: AbortSignal) => {
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBe(reason);
    return value;
  });
  await expect(call.race(start, discard)).rejects.toBe(reason);
  expect(start).toHaveBeenCalledOnce();
  come('late');
  await vi.waitFor(() => expect(discard).toHaveBeenCalledExactlyOnceWith('late'));
  expect(() => call.throwIfAborted()).toThrow(reason);
});

it('an abort during the call rejects at once, and reaches the called function', async () => {
  const caller = new AbortController();
  const call = abortableCall(caller.signal);
  const seen: unknown[] = [];
  const { value, come } = late<string>();
  const start = (signal: AbortSignal) => {
    signal.addEventListener('abort', () => seen.push(signal.reason));
    return value;
  };
  const racing = call.race(start, (discarded) => seen.push(discarded));
  caller.abort('stop');
  expect(seen).toEqual(['stop']);
  await expect(racing).rejects.toBe('stop');
  come('late');
  await vi.waitFor(() => expect(seen).toEqual(['stop', 'late']));
});

it('an abort between two steps stops what begins after it at once', () => {
  const caller = new AbortController();
  const call = abortableCall(caller.signal);
  const [first, second] = [vi.fn(), vi.fn()];
  call.onAbort(first);
  call.onAbort(second);
  caller.abort();
  expect([first, second].map((stop) => stop.mock.calls.length)).toEqual([0, 1]);
  const third = vi.fn();
  call.onAbort(third);
  expect(third).toHaveBeenCalledOnce();
});

it('an abort after the end stops nothing', () => {
  const caller = new AbortController();
  const call = abortableCall(caller.signal);
  const stop = vi.fn();
  call.onAbort(stop);
  call.end();
  caller.abort();
  expect(stop).not.toHaveBeenCalled();
  expect(call.signal.aborted).toBe(false);
});

it('a failure of the call is the rejection, and a value is not discarded', async () => {
  const call = abortableCall(new AbortController().signal);
  const discard = vi.fn();
  await expect(call.race(() => Promise.reject(new Error('refused')), discard)).rejects.toThrow('refused');
  await expect(call.race(async () => 7, discard)).resolves.toBe(7);
  expect(discard).not.toHaveBeenCalled();
});
