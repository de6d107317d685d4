/** The message of a refused option or content. */
import { expect } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';

export function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return (error as Error).message;
  }
  throw new Error('it was taken');
}
