/**
 * Signals and lost outputs of the program. Invariant: the first of them aborts, only a second signal ends the process,
 * and an output that fails again is no second signal.
 */
import { expect, onTestFinished, test, vi } from 'vitest';
import { interrupts } from '../../src/cli/personInput.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const LOST = ['stdout lost', 'stderr lost'] as const;
const CAUSES = [...SIGNALS, ...LOST] as const;
type Cause = (typeof CAUSES)[number];

/** The handlers of the program, which the process itself does not get. */
function handlers() {
  const registered = new Map<string, (argument?: unknown) => void>();
  const take = (prefix: string) =>
    ((event: string, handler: () => void) => void registered.set(prefix + event, handler)) as never;
  const spies = [
    vi.spyOn(process, 'on').mockImplementation(take('')),
    vi.spyOn(process.stdout, 'on').mockImplementation(take('stdout ')),
    vi.spyOn(process.stderr, 'on').mockImplementation(take('stderr ')),
  ];
  const exit = vi.spyOn(process, 'exit').mockImplementation((() => undefined) as never);
  onTestFinished(() => {
    for (const spy of [...spies, exit]) spy.mockRestore();
  });
  const happens = (cause: Cause): void => registered.get(cause.replace('lost', 'error'))?.(cause);
  return { happens, exit };
}

const pairs = CAUSES.flatMap((first) => CAUSES.map((second) => [first, second] as const));
test.each(pairs)('%s aborts, and a %s after it ends the process only if it is a signal', (first, second) => {
  const { happens, exit } = handlers();
  const signal = interrupts();
  expect(signal.aborted).toBe(false);
  happens(first);
  expect([signal.aborted, exit.mock.calls]).toEqual([true, []]);
  happens(second);
  const isSignal = (SIGNALS as readonly string[]).includes(second);
  expect(exit.mock.calls).toEqual(isSignal ? [[130]] : []);
});

test.each(CAUSES)('with its own Ctrl-C a conversation keeps SIGINT, however often, and %s still aborts', (cause) => {
  const { happens, exit } = handlers();
  const sigint = vi.fn();
  const signal = interrupts({ sigint });
  for (const _ of [1, 2, 3]) happens('SIGINT');
  expect([sigint.mock.calls.length, signal.aborted]).toEqual([3, false]);
  happens(cause);
  expect([signal.aborted, exit.mock.calls]).toEqual([cause !== 'SIGINT', []]);
});
