// What the app uses of Next, which is no dependency of this repository: enough to check its types without installing it.
declare module 'next/headers' {
  export function cookies(): Promise<{
    get(name: string): { value: string } | undefined;
    set(name: string, value: string, options?: { httpOnly?: boolean; sameSite?: 'lax' | 'strict' }): void;
  }>;
}

declare module 'next/navigation' {
  export function redirect(url: string): never;
}
