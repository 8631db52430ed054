export { type RedisCacheOptions, type RedisClient, redisCache } from "./redis-cache.js";
