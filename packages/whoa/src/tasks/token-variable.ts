/** Holds the token for a server, where it is served and where it is asked. */
export const TOKEN_VARIABLE = 'WHOA_TOKEN';
