/** What the examples use of Next, which is not installed here, and styles, which its build takes. */
declare module 'next/navigation' {
  export function redirect(address: string): never;
}
declare module 'next/headers' {
  export function headers(): Promise<Headers>;
}
declare module '*.css';
