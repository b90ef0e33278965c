"""Our labels against those of others."""
