/** The environment variable with the token of a server, for the server and for clients. */
export const TOKEN_VARIABLE = 'WHOA_TOKEN';
