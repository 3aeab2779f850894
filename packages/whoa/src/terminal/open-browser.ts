import { spawn } from 'node:child_process';

/** Never the user's PATH, in which a project can have folders: these programs start others by name. */
const PATH = '/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin:/snap/bin';

/** Opens a page. Failing is fine: the address is printed as well. */
export function openBrowser(address: string): void {
  const system = process.env['SystemRoot'] ?? 'C:\\Windows';
  const [file = '', ...args] =
    process.platform === 'win32'
      ? [`${system}\\System32\\rundll32.exe`, 'url.dll,FileProtocolHandler', address]
      : [process.platform === 'darwin' ? 'open' : 'xdg-open', address];
  const env = process.platform === 'win32' ? process.env : { ...process.env, PATH };
  const browser = spawn(file, args, { detached: true, stdio: 'ignore', env });
  browser.on('error', () => {});
  browser.unref();
}
