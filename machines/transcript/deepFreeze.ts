/** Freezes values that several readers share. Invariant: a frozen value counts as deeply frozen, so entries of a log are not searched again. */

export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || ArrayBuffer.isView(value)) return value;
  Object.freeze(value);
  if (Array.isArray(value)) for (let index = 0; index < value.length; index++) deepFreeze(value[index]);
  else for (const key in value) deepFreeze((value as { [key: string]: unknown })[key]);
  return value;
}
