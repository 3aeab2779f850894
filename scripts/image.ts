// npm run image                                    builds the image 'whoa' of deploy/ with Docker, from the packages of this clone
// npm run image -- FOLDER                          the same for your copy of deploy/
// npm run image -- FOLDER podman build -t NAME     with another builder, another name or more options
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { addLocalPackages, checkLock, fromCaller } from './local-packages.ts';

const [path, ...given] = process.argv.slice(2);
const folder = path === undefined ? join(import.meta.dirname, '../deploy') : fromCaller(path);
const [builder = '', ...options] = given.length > 0 ? given : ['docker', 'build', '-t', 'whoa'];
addLocalPackages(folder);
// No addresses in the lock file: the image may be built with another registry.
const lock = ['install', '--package-lock-only', '--omit-lockfile-registry-resolved', '--no-audit', '--no-fund'];
execFileSync('npm', lock, { cwd: folder, stdio: 'inherit' });
checkLock(join(folder, 'package-lock.json'));
execFileSync(builder, [...options, folder], { stdio: 'inherit' });
