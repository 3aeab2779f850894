// For Whoa's own packages. Anything here may change in any release.

export { createSqliteSessions } from '../stores/sqlite-sessions.ts';
export { defaultPath as defaultSqlitePath } from '../stores/sqlite/place.ts';
export { cancelBackground } from '../run/background.ts';
