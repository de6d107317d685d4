/**
 * What becomes of an error that a watcher throws. Rule: it is data from here on, without secrets; whether it ends the run
 * under way is judged in order with everything else, so that no step is left half done.
 */
import type { Json } from '../machines/internal.ts';
import type { Act } from './acts.ts';
import type { RuntimeOptions } from './runtimeOptions.ts';
import { thrownText } from './thrown.ts';

export function watcherFailed(
  { policies, redact }: Pick<RuntimeOptions, 'policies' | 'redact'>,
  put: (event: Act) => void,
  diagnose: (code: string, detail?: Json) => void,
): (error: unknown) => void {
  return (error) => {
    const message = redact(thrownText(error));
    if (policies.observerErrors === 'isolate') diagnose('observer_error', { message });
    else put({ type: 'observer.failed', error: { code: 'observer', message } });
  };
}
